package dunlin

// version is that of Cargo.toml, which launchers/go/build writes here. A checkout has none, and takes a program of any.
const version = ""

// carried is the program in the module of this platform, as gzip packs it; its hash is part of the name under which it
// is unpacked.
var carried struct {
	packed []byte
	hash   string
	size   int64
}
