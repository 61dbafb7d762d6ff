"""What every package stands on: errors, units, clocks, own files, text. It imports none of them."""
