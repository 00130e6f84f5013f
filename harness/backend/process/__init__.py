"""Every process of ours but the coordinator: how it is started, asked and lost (`service`, `process`,
`lost`), what runs in it (`child`, `fork`, `guard`, `state`), and what both share (`channel`, `system`)."""
