"""Where builds come from: one file per provider, which makes an exact pin of what a configuration asks for, and one
installation for all pins. No torch here."""
