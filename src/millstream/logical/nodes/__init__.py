"""The nodes of a plan, one file per operator; and what several of them share, one file per kind."""
