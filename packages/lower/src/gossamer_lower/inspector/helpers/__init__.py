"""The search results that the inspector stores."""
