"""The packing that always ends: pods class by class onto nodes that exist and nodes that are being bought. Pure."""
