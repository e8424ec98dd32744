// Lower layers for benchmarks and fuzzers: who imports VarveTesting sees the records layer and
// what it shows of the layers under it. Apps have no use for them; they may change at any time.

@_exported public import VarveBase
@_exported public import VarveEngine
@_exported public import VarveFormat
@_exported public import VarveIO
@_exported public import VarveRecords
