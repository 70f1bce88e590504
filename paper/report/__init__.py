"""How results are judged, drawn and told."""
