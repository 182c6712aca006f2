"""One Gaussian mechanism under every notion of privacy that the library knows."""
