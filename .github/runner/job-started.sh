#!/usr/bin/env bash
# Lies on the GPU machine, named by ACTIONS_RUNNER_HOOK_JOB_STARTED: a pull request can edit every
# workflow but not this file. It lets only this repository's main branch start jobs.
set -euo pipefail

refuse() {
  echo "this runner refuses the job: $1" >&2
  exit 1
}

repository=${FLOPWATCH_REPOSITORY:?set it to OWNER/NAME in the environment of the runner}
[[ ${GITHUB_REPOSITORY:-} == "$repository" ]] || refuse "repository ${GITHUB_REPOSITORY:-unknown}"
[[ ${GITHUB_REF:-} == refs/heads/main ]] || refuse "ref ${GITHUB_REF:-unknown}"
case ${GITHUB_EVENT_NAME:-} in
  push | schedule | workflow_dispatch) ;;
  *) refuse "event ${GITHUB_EVENT_NAME:-unknown}" ;;
esac
case ${GITHUB_WORKFLOW_REF:-} in
  "$repository"/.github/workflows/main-bench.yml@refs/heads/main) ;;
  "$repository"/.github/workflows/pr-bench-dispatch.yml@refs/heads/main) ;;
  *) refuse "workflow ${GITHUB_WORKFLOW_REF:-unknown}" ;;
esac
