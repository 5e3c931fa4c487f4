"""How a run is carried out: sides, worker processes, sessions."""
