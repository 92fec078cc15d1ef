"""Files that people upload: bytes in an object store, and facts in MongoDB. Also previews of links."""
