package planner

import (
	"encoding/json"

	"google.golang.org/protobuf/reflect/protoreflect"

	"harness/contract"
	"harness/planner/model"
)

// offered are the actions that the model gets as tools, and what it is told of them.
var offered = []struct{ action, about string }{
	{contract.ReadFile, "Read a text file with line numbers, in parts: offset is the first line, limit the number of lines. Or see an image (PNG, JPEG, GIF, WebP), or a kept output by its artifact digest."},
	{contract.ListFiles, "List files below a folder; glob as **/*.go; git-ignored ones only with include_ignored."},
	{contract.Search, "Search file contents with a regular expression (RE2); context lines around each match; literal for plain text."},
	{contract.EditFile, "Replace old_string, which must occur exactly once (or replace_all), by new_string. Give the text without line numbers."},
	{contract.WriteFile, "Create a file or replace it whole; parent folders are made."},
	{contract.ApplyPatch, "Apply a unified diff or a *** Begin Patch text to one or many files, all or nothing."},
	{contract.RunCommand, "Run a shell command in the sandbox: tests, builds, git. Output comes back head and tail."},
	{contract.Diff, "Show what this session has changed so far."},
}

// tools are made from the contract, so that what the model may send is what the executor takes.
func tools() []model.Tool {
	list := make([]model.Tool, 0, len(offered)+1)
	for _, o := range offered {
		md, required := contract.Schema(o.action)
		list = append(list, model.Tool{Name: o.action, Description: o.about, Schema: schema(md, required)})
	}
	return append(list, planTool)
}

// sizeOf is how many bytes of each request the tools are.
func sizeOf(tools []model.Tool) (n int) {
	for _, t := range tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return n
}

func schema(md protoreflect.MessageDescriptor, required []string) json.RawMessage {
	properties := map[string]any{}
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		properties[string(fd.Name())] = fieldSchema(fd)
	}
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic("planner: " + err.Error())
	}
	return b
}

func fieldSchema(fd protoreflect.FieldDescriptor) map[string]any {
	switch {
	case fd.IsMap():
		return map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}}
	case fd.IsList():
		return map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
	}
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return map[string]any{"type": "boolean"}
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		return map[string]any{"type": "integer", "minimum": 0}
	case protoreflect.EnumKind:
		var names []string
		for i := range fd.Enum().Values().Len() {
			names = append(names, string(fd.Enum().Values().Get(i).Name()))
		}
		return map[string]any{"type": "string", "enum": names}
	}
	return map[string]any{"type": "string"}
}
