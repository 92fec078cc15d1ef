"""Publishing what is due: held to the exact moment, published once, found again when its worker died."""
