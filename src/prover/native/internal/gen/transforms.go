package main

func (g *generator) transformKernels() {}
