//go:build tools

package tools

import (
	_ "github.com/google/osv-scanner/v2/cmd/osv-scanner"
)
