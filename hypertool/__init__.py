"""HyperTool: one tool whose argument is a Python program over your MCP tools.

The map, lowest layer first (docs/architecture.md has the picture; import-linter checks the order):

    errors                              who should act
    tools  trajectory  tasks  config    records
    blocks  jail                        a block as a syntax tree; the jail's processes
    pool  sandbox  prompts              MCP servers; running one block; the one renderer
    model                               chat endpoint, scripted expert
    interface                           the one tool: pool and sandbox meet here
    agent                               the loop, in three arms
    scoring  verify  data  metrics      after the episode
    runs; rollout  tables               a run on disk; many episodes; tables
    cli                                 the `hypertool` command
    guest                               runs inside the jail; imported by nobody
"""
