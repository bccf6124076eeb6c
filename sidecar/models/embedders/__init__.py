"""What turns text into vectors: the embedders that run here, the one over HTTP, and how they are found."""
