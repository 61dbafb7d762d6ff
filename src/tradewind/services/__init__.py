"""Services: models being served by replicas whose number follows the load."""
