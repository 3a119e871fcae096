"""Devices that pods claim (dynamic resource allocation): what there is, what is asked for, who gets which. Pure."""
