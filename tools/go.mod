module github.com/toolmend/toolmend/tools

go 1.26.0

require (
	github.com/stretchr/testify v1.12.1
	github.com/toolmend/toolmend v0.0.0
	golang.org/x/mod v0.42.0
)

require (
	github.com/santhosh-tekuri/jsonschema/v5 v5.3.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/toolmend/toolmend => ..
