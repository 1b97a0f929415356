"""HyperTool: one tool whose argument is a Python program over your MCP tools.

The map, lowest layer first (docs/architecture.md has the picture; import-linter checks the order):

    errors                              who should act
    tools  trajectory  tasks  config    records
    blocks                              a block seen as a syntax tree
    pool  sandbox  prompts              MCP servers; the jail; the one renderer
    model                               chat endpoint, scripted expert
    interface                           the one tool: pool and sandbox meet here
    agent                               the loop, in three arms
    scoring  verify  data  metrics  runs    after the episode
    cli                                 the `hypertool` command
    guest                               runs inside the jail; imported by nobody
"""
