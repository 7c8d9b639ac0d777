package planner

import (
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/planner/model"
)

// maxServerTools is how many bytes of each request tools of MCP servers may be,
// some 8,000 tokens. Those that do not fit are left out, and it is said.
const maxServerTools = 28 << 10

// serverTools offers the tools of MCP servers to the model.
func (r *run) serverTools() error {
	if len(r.Servers) == 0 {
		return nil
	}
	res, err := r.Executor.Submit(r.ctx, r.step(contract.ListMCPTools, nil))
	if err != nil {
		return err
	}
	warnings := res.Notes
	r.mcp = map[string]*v1.McpTool{}
	size, left := 0, 0
	for _, t := range res.McpTools {
		schema, err := t.InputSchema.MarshalJSON()
		tool := model.Tool{Name: t.Name, Description: fmt.Sprintf("(from the MCP server %s) %s", t.Server, t.Description), Schema: json.RawMessage(schema)}
		n := sizeOf([]model.Tool{tool})
		if err != nil || len(t.Name) > 64 || r.mcp[t.Name] != nil || size+n > maxServerTools {
			left++
			continue
		}
		size += n
		r.mcp[t.Name] = t
		r.tools = append(r.tools, tool)
	}
	if left > 0 {
		warnings = append(warnings, fmt.Sprintf("%d tools of MCP servers are not offered to the model: there are too many, or their names are too long or the same", left))
	}
	for _, w := range warnings {
		if err := r.emit("warning", map[string]any{"message": w}); err != nil {
			return err
		}
	}
	return nil
}

// callTool is the step of a call of such a tool.
func (r *run) callTool(t *v1.McpTool, args *structpb.Struct) (*v1.Step, error) {
	step := r.step(contract.CallMCPTool, map[string]any{"server": t.Server, "tool": t.Tool})
	step.Args.Fields["arguments"] = structpb.NewStructValue(args)
	if _, err := contract.Validate(step); err != nil {
		return nil, errors.New(err.Error())
	}
	return step, nil
}
