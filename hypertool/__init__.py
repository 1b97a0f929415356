"""HyperTool: one tool whose argument is a Python program over your MCP tools.

The map, lowest layer first (docs/architecture.md has the picture; import-linter checks the order):

    errors                              who should act
    tools  trajectory  tasks  config  servers  records
    blocks  jail  approval              a block as a syntax tree; the jail's processes; who lets a call happen
    pool  sandbox  prompts              MCP servers; running one block; the one renderer
    executors                           which isolation this machine offers
    model                               chat endpoint, scripted expert
    interface                           the one tool: pool and sandbox meet here
    agent                               the loop, in three arms
    scoring  verify  data  metrics      after the episode
    runs; rollout  tables               a run on disk; many episodes; tables
    serve                               HyperTool as an MCP server
    cli                                 the `hypertool` command
    guest  keeper                       run by path: inside the jail; above a server. Imported by nobody
"""
