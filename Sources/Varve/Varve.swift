// The umbrella: everything that an app needs, under one import.
@_exported public import VarveObjects
