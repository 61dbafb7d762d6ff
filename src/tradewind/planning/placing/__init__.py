"""The ways that `economics.placing` weighs, with their prices: for requests of a measured length
(`requests`), for work that ends (`work`), for a model that is served (`served`)."""
