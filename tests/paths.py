"""Where things lie in the repository."""

from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
GOLDEN = ROOT / "tests" / "golden"
TRANSCRIPTS = ROOT / "tests" / "transcripts"
