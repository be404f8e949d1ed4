"""`millstream soak --what mixture`: kills, SIGTERM, queries that come and go, a full disk, failing and slow sinks."""
