package main

func work([]string) error { return nil }
