package contract

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "harness/contract/harness/v1"
)

const example = `{"step_id":"s_8f3a","session_id":"x1","action":"run_command",
 "args":{"cmd":"pytest -q tests/test_user_repo.py","cwd":"/workspace/repo","timeout_s":120},
 "expect":{"exit_code":0,"artifacts":["report.xml"],"max_output_bytes":65536},
 "safety":{"network":"deny","writes":"workspace_only"},"mode":"sync"}`

func decode(data []byte) (*v1.Step, error) {
	step := new(v1.Step)
	return step, UnmarshalJSON(data, step)
}

func TestStepInJSON(t *testing.T) {
	step, err := decode([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	args, err := Validate(step)
	if err != nil {
		t.Fatal(err)
	}
	want := &v1.RunCommandArgs{Cmd: "pytest -q tests/test_user_repo.py", Cwd: "/workspace/repo", TimeoutS: 120}
	if !proto.Equal(args, want) {
		t.Errorf("args %v, want %v", args, want)
	}
	if step.Expect.ExitCode == nil || *step.Expect.ExitCode != 0 || step.Expect.MaxOutputBytes != 65536 {
		t.Errorf("expect %v", step.Expect)
	}
	out, err := protojson.Marshal(step)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{`"step_id"`, `"session_id"`, `"max_output_bytes":65536`, `"workspace_only"`, `"timeout_s"`} {
		if !strings.Contains(strings.ReplaceAll(string(out), " ", ""), name) {
			t.Errorf("the JSON form has no %s: %s", name, out)
		}
	}
}

func TestBadSteps(t *testing.T) {
	long := strings.Repeat("x", MaxCommand+1)
	for _, c := range []struct {
		name, json string
		kind       v1.Error_Kind
		says       string
	}{
		{"no id", `{"session_id":"x","action":"diff"}`, v1.Error_invalid, "step_id"},
		{"id with slash", `{"step_id":"../x","session_id":"x","action":"diff"}`, v1.Error_invalid, "step_id"},
		{"dots as id", `{"step_id":"s","session_id":"..","action":"diff"}`, v1.Error_invalid, "session_id"},
		{"unknown action", `{"step_id":"s","session_id":"x","action":"fly"}`, v1.Error_unknown_action, `"fly"`},
		{"no action", `{"step_id":"s","session_id":"x"}`, v1.Error_unknown_action, "action"},
		{"unknown arg", `{"step_id":"s","session_id":"x","action":"read_file","args":{"path":"a","lines":3}}`, v1.Error_invalid, "args.lines"},
		{"missing arg", `{"step_id":"s","session_id":"x","action":"edit_file","args":{"path":"a","old_string":"b"}}`, v1.Error_invalid, "args.new_string"},
		{"null arg", `{"step_id":"s","session_id":"x","action":"run_command","args":{"cmd":null}}`, v1.Error_invalid, "args.cmd"},
		{"number for text", `{"step_id":"s","session_id":"x","action":"read_file","args":{"path":7}}`, v1.Error_invalid, "must be a string, is a number"},
		{"text for number", `{"step_id":"s","session_id":"x","action":"read_file","args":{"path":"a","offset":"7"}}`, v1.Error_invalid, "args.offset"},
		{"negative", `{"step_id":"s","session_id":"x","action":"read_file","args":{"path":"a","offset":-1}}`, v1.Error_invalid, "whole number"},
		{"fraction", `{"step_id":"s","session_id":"x","action":"read_file","args":{"path":"a","limit":1.5}}`, v1.Error_invalid, "whole number"},
		{"huge number", `{"step_id":"s","session_id":"x","action":"read_file","args":{"path":"a","limit":1e30}}`, v1.Error_invalid, "whole number"},
		{"list for text", `{"step_id":"s","session_id":"x","action":"run_command","args":{"cmd":["a"]}}`, v1.Error_invalid, "is a list"},
		{"map of numbers", `{"step_id":"s","session_id":"x","action":"run_command","args":{"cmd":"a","env":{"A":1}}}`, v1.Error_invalid, "args.env"},
		{"bad variable", `{"step_id":"s","session_id":"x","action":"run_command","args":{"cmd":"a","env":{"A=B":"1"}}}`, v1.Error_invalid, "args.env"},
		{"bad enum in args", `{"step_id":"s","session_id":"x","action":"write_file","args":{"path":"a","content":"","encoding":"rot13"}}`, v1.Error_invalid, "rot13"},
		{"NUL in path", `{"step_id":"s","session_id":"x","action":"read_file","args":{"path":"a\u0000b"}}`, v1.Error_invalid, "NUL"},
		{"NUL in command", `{"step_id":"s","session_id":"x","action":"run_command","args":{"cmd":"a\u0000b"}}`, v1.Error_invalid, "NUL"},
		{"NUL in artifact", `{"step_id":"s","session_id":"x","action":"run_command","args":{"cmd":"a"},"expect":{"artifacts":["\u0000"]}}`, v1.Error_invalid, "expect.artifacts"},
		{"empty command", `{"step_id":"s","session_id":"x","action":"run_command","args":{"cmd":"  "}}`, v1.Error_invalid, "empty"},
		{"long command", `{"step_id":"s","session_id":"x","action":"run_command","args":{"cmd":"` + long + `"}}`, v1.Error_too_large, "args.cmd"},
		{"long path", `{"step_id":"s","session_id":"x","action":"read_file","args":{"path":"` + long + `"}}`, v1.Error_too_large, "args.path"},
		{"endless timeout", `{"step_id":"s","session_id":"x","action":"run_command","args":{"cmd":"a","timeout_s":4000000000}}`, v1.Error_invalid, "timeout_s"},
		{"read of two things", `{"step_id":"s","session_id":"x","action":"read_file","args":{"path":"a","artifact":"b"}}`, v1.Error_invalid, "one of them"},
		{"restore both ways", `{"step_id":"s","session_id":"x","action":"restore","args":{"all":true,"redo":true}}`, v1.Error_invalid, "exclude"},
		{"unknown field", `{"step_id":"s","session_id":"x","action":"diff","sudo":true}`, v1.Error_invalid, "sudo"},
		{"unknown safety", `{"step_id":"s","session_id":"x","action":"diff","safety":{"network":"allow"}}`, v1.Error_invalid, "allow"},
		{"unknown mode", `{"step_id":"s","session_id":"x","action":"diff","mode":"later"}`, v1.Error_invalid, "later"},
		{"cut JSON", `{"step_id":"s"`, v1.Error_invalid, "not valid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			step, err := decode([]byte(c.json))
			if err == nil {
				_, err = Validate(step)
			}
			if err == nil {
				t.Fatal("taken")
			}
			if e := AsError(err); e.Kind != c.kind || !strings.Contains(e.Error(), c.says) {
				t.Errorf("%v: %v, want %v with %q", e.Kind, e, c.kind, c.says)
			}
		})
	}
}

func TestTooLarge(t *testing.T) {
	args, err := structpb.NewStruct(map[string]any{"path": "a", "content": strings.Repeat("x", MaxStepBytes+1)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Validate(&v1.Step{StepId: "s", SessionId: "x", Action: WriteFile, Args: args})
	if AsError(err).Kind != v1.Error_too_large {
		t.Errorf("got %v", err)
	}
}

// A field that only a newer version knows, in the binary form, is no less an error.
func TestUnknownBinaryField(t *testing.T) {
	step := &v1.Step{StepId: "s", SessionId: "x", Action: Diff, Safety: &v1.Safety{}}
	step.Safety.ProtoReflect().SetUnknown([]byte{0x98, 0x06, 0x01})
	_, err := Validate(step)
	if e := AsError(err); e.Kind != v1.Error_invalid || !strings.Contains(e.Field, "safety") {
		t.Errorf("got %v", err)
	}
}

func TestDigestSeesEveryField(t *testing.T) {
	step, err := decode([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	base := StepDigest(step)
	for name, change := range map[string]func(*v1.Step){
		"args":   func(s *v1.Step) { s.Args.Fields["cmd"] = structpb.NewStringValue("x") },
		"safety": func(s *v1.Step) { s.Safety.Writes = v1.Safety_none },
		"mode":   func(s *v1.Step) { s.Mode = v1.Step_async },
		"expect": func(s *v1.Step) { s.Expect.ExitCode = nil },
	} {
		c := proto.CloneOf(step)
		if StepDigest(c) != base {
			t.Error("a copy has another digest")
		}
		change(c)
		if StepDigest(c) == base {
			t.Errorf("a change of %s leaves the digest", name)
		}
	}
}

// Whatever bytes come, decoding ends with a valid step or a typed error.
func FuzzDecodeStep(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte(`{"action":"read_file","args":{"path":["\u0000"]}}`))
	f.Add([]byte(`{"step_id":"s","session_id":"x","action":"write_file","args":{"path":"a","content":"b","encoding":"base64"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		step, err := decode(data)
		if err == nil {
			_, err = Validate(step)
		}
		if err == nil {
			if _, err := Args(step); err != nil {
				t.Errorf("valid, but its args are not: %v", err)
			}
			return
		}
		if e := AsError(err); e.Kind == v1.Error_internal || e.Message == "" {
			t.Errorf("%v for %q", e, data)
		}
	})
}
