"""Contracts: proof, before a query runs, that its state stays bounded.

| term | meaning |
|---|---|
| offer | a template of punctuation that a stream promises, with the declaration behind it (`offers`) |
| state part | a part of an operator's state: the offers that bound it, or what it lacks (`state_parts`) |
| requirement | what the inputs would have to promise to bound a part (`requirements`) |
| hint | the text printed for an unbounded part: declarations that meet a requirement, or other advice (`hints`) |
"""
