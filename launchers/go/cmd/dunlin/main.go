// The command dunlin is the program of the module: dunlin run -- go test ./...
package main

import (
	"fmt"
	"os"

	"dunlin"
)

// notStarted is the status of dunlin run, too, where no server can be started.
const notStarted = 125

func main() {
	fmt.Fprintln(os.Stderr, dunlin.Exec(os.Args[1:]...))
	os.Exit(notStarted)
}
