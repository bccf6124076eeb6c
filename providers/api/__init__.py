"""What an author of providers, tools and middleware imports."""
