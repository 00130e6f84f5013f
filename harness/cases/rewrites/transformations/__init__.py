"""The ways in which a schema can be written differently: each public function of a module here is one, found
without a list. It is given a place in a schema and yields what could stand there instead."""
