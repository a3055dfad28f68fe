//go:build programs

// Which programs of containerd the tests build; nothing of this folder is compiled itself.
package programs

import (
	_ "github.com/containerd/containerd/cmd/containerd"
	_ "github.com/containerd/containerd/cmd/containerd-shim-runc-v2"
)
