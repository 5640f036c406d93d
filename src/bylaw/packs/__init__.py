"""The packs that come with Bylaw."""
