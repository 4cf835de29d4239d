"""Where loops, blocks and iterations stand: finding them by name, following and replacing them."""
