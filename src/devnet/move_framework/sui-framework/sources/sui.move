module sui::sui;

public struct SUI has drop {}
