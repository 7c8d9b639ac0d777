package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "harness/contract/harness/v1"
)

// Limits of a step. A command is one argument of the shell, and Linux takes
// no single argument over 128 KiB (MAX_ARG_STRLEN in linux/binfmts.h).
const (
	MaxStepBytes = 16 << 20
	MaxCommand   = 128<<10 - 1
	MaxPath      = 4095
	MaxTimeout   = 24 * 60 * 60 // seconds
)

// idBytes are what an id may be made of, 1 to 64 of them.
const idBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

// Validate checks a step whole and returns its decoded args.
func Validate(step *v1.Step) (proto.Message, error) {
	if step == nil {
		return nil, Errorf(v1.Error_invalid, "the request has no step").WithField("step")
	}
	if err := CheckID("step_id", step.StepId); err != nil {
		return nil, err
	}
	if err := CheckID("session_id", step.SessionId); err != nil {
		return nil, err
	}
	if n := proto.Size(step); n > MaxStepBytes {
		return nil, Errorf(v1.Error_too_large, "the step has %d bytes, the limit is %d", n, MaxStepBytes)
	}
	if name := unknownField(step.ProtoReflect(), ""); name != "" {
		return nil, Errorf(v1.Error_invalid, "a field that this version does not know").WithField(name)
	}
	if _, ok := v1.Step_Mode_name[int32(step.Mode)]; !ok {
		return nil, Errorf(v1.Error_invalid, "has no value %d", step.Mode).WithField("mode")
	}
	if _, ok := v1.Safety_Network_name[int32(step.GetSafety().GetNetwork())]; !ok {
		return nil, Errorf(v1.Error_invalid, "has no value %d", step.Safety.Network).WithField("safety.network")
	}
	if _, ok := v1.Safety_Writes_name[int32(step.GetSafety().GetWrites())]; !ok {
		return nil, Errorf(v1.Error_invalid, "has no value %d", step.Safety.Writes).WithField("safety.writes")
	}
	args, err := Args(step)
	if err != nil {
		return nil, err
	}
	if err := checkText(args); err != nil {
		return nil, err
	}
	for _, p := range step.GetExpect().GetArtifacts() {
		if err := checkPath(p); err != nil {
			return nil, err.WithField("expect.artifacts")
		}
	}
	return args, nil
}

// CheckID says what is wrong with an id, nil if nothing.
func CheckID(field, id string) error {
	if len(id) == 0 || len(id) > 64 || strings.Trim(id, idBytes) != "" || strings.Trim(id, ".") == "" {
		return Errorf(v1.Error_invalid, "%q is not an id", id).WithField(field).
			WithHint("1 to 64 letters, digits, '_', '-' or '.'")
	}
	return nil
}

func checkText(args proto.Message) error {
	switch a := args.(type) {
	case *v1.RunCommandArgs:
		switch {
		case strings.TrimSpace(a.Cmd) == "":
			return Errorf(v1.Error_invalid, "the command is empty").WithField("args.cmd")
		case len(a.Cmd) > MaxCommand:
			return Errorf(v1.Error_too_large, "the command has %d bytes, the limit is %d", len(a.Cmd), MaxCommand).
				WithField("args.cmd").WithHint("write a script file and run that")
		case strings.ContainsRune(a.Cmd, 0):
			return Errorf(v1.Error_invalid, "the command has a NUL byte").WithField("args.cmd")
		case a.TimeoutS > MaxTimeout:
			return Errorf(v1.Error_invalid, "%d s is over the limit of %d", a.TimeoutS, MaxTimeout).WithField("args.timeout_s")
		}
		for k, v := range a.Env {
			if k == "" || strings.ContainsAny(k, "=\x00") || strings.ContainsRune(v, 0) {
				return Errorf(v1.Error_invalid, "%q is no name and value of a variable", k).WithField("args.env")
			}
		}
	case *v1.ReadFileArgs:
		if (a.Path == "") == (a.Artifact == "") {
			return Errorf(v1.Error_invalid, "give a path or an artifact, one of them").WithField("args.path")
		}
	case *v1.CallMcpToolArgs:
		if a.TimeoutS > MaxTimeout {
			return Errorf(v1.Error_invalid, "%d s is over the limit of %d", a.TimeoutS, MaxTimeout).WithField("args.timeout_s")
		}
	case *v1.RestoreArgs:
		if a.ToStep != "" && a.All || a.Redo && (a.All || a.ToStep != "") {
			return Errorf(v1.Error_invalid, "to_step, all and redo exclude one another").WithField("args")
		}
	}
	var bad error
	args.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch fd.Name() {
		case "path", "cwd":
			if err := checkPath(v.String()); err != nil {
				bad = err.WithField("args." + string(fd.Name()))
			}
		}
		return bad == nil
	})
	return bad
}

func checkPath(p string) *Error {
	switch {
	case strings.ContainsRune(p, 0):
		return Errorf(v1.Error_invalid, "the path %q has a NUL byte", p)
	case len(p) > MaxPath:
		return Errorf(v1.Error_too_large, "the path has %d bytes, the limit is %d", len(p), MaxPath)
	}
	return nil
}

// unknownField is the place of a field of the wire form that m does not have.
func unknownField(m protoreflect.Message, at string) string {
	if len(m.GetUnknown()) > 0 {
		return strings.TrimPrefix(at+".?", ".")
	}
	var found string
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if fd.Message() != nil && !fd.IsList() && !fd.IsMap() {
			found = unknownField(v.Message(), at+"."+string(fd.Name()))
		}
		return found == ""
	})
	return found
}

// StepDigest is the digest of exactly what a step asks for.
func StepDigest(step *v1.Step) string {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(step)
	if err != nil {
		panic("contract: a valid step does not marshal: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}
