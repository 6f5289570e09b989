"""From a hypothesis and its readings to a posterior: particles in torch, checked by NUTS."""
