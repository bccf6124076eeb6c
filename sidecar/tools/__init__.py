"""How tools are carried out. Which of them a model asks for, and who must agree, is decided in `sidecar.agents`."""
