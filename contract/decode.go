package contract

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "harness/contract/harness/v1"
)

// spec is what the schema cannot say of an action's args.
type spec struct {
	args     proto.Message
	required []string
	reads    bool // changes nothing, so several may run side by side
}

var actions = map[string]spec{
	ReadFile:   {args: &v1.ReadFileArgs{}, reads: true},
	WriteFile:  {args: &v1.WriteFileArgs{}, required: []string{"path", "content"}},
	EditFile:   {args: &v1.EditFileArgs{}, required: []string{"path", "old_string", "new_string"}},
	ApplyPatch: {args: &v1.ApplyPatchArgs{}, required: []string{"patch"}},
	ListFiles:  {args: &v1.ListFilesArgs{}, reads: true},
	Search:     {args: &v1.SearchArgs{}, required: []string{"pattern"}, reads: true},
	RunCommand: {args: &v1.RunCommandArgs{}, required: []string{"cmd"}},
	WriteStdin: {args: &v1.WriteStdinArgs{}, required: []string{"target"}},
	CancelStep: {args: &v1.CancelStepArgs{}, required: []string{"target"}},
	ReadOutput: {args: &v1.ReadOutputArgs{}, required: []string{"target"}, reads: true},
	Diff:       {args: &v1.DiffArgs{}, reads: true},
	Restore:    {args: &v1.RestoreArgs{}},
	Apply:      {args: &v1.ApplyArgs{}},
	Discard:    {args: &v1.DiscardArgs{}},

	ListMCPTools: {args: &v1.ListMcpToolsArgs{}},
	CallMCPTool:  {args: &v1.CallMcpToolArgs{}, required: []string{"server", "tool"}},
}

// Actions is the names of all actions, sorted.
func Actions() []string {
	names := make([]string, 0, len(actions))
	for name := range actions {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Reads says whether an action changes nothing.
func Reads(action string) bool { return actions[action].reads }

// Schema is the message that an action's args must fit and the fields that
// must be there, nil for an unknown action.
func Schema(action string) (args protoreflect.MessageDescriptor, required []string) {
	s, ok := actions[action]
	if !ok {
		return nil, nil
	}
	return s.args.ProtoReflect().Descriptor(), s.required
}

// MarshalJSON is a message in the contract's JSON mapping, with the names of harness.proto.
func MarshalJSON(m proto.Message) ([]byte, error) {
	return protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
}

// UnmarshalJSON reads a message from its JSON form. Unknown fields are errors.
func UnmarshalJSON(data []byte, m proto.Message) error {
	if err := protojson.Unmarshal(data, m); err != nil {
		return Errorf(v1.Error_invalid, "the JSON is not valid: %s", protoError(err))
	}
	return nil
}

// protoError takes the library's unstable prefix and white space off its message.
func protoError(err error) string {
	s := strings.ReplaceAll(err.Error(), "\u00a0", " ")
	return strings.TrimSpace(strings.TrimPrefix(s, "proto:"))
}

// Args decodes step.args into the action's message. Every field must be one
// that the message has, of its type; required ones must be there.
func Args(step *v1.Step) (proto.Message, error) {
	s, ok := actions[step.GetAction()]
	if !ok {
		return nil, Errorf(v1.Error_unknown_action, "there is no action %q", step.GetAction()).
			WithField("action").WithHint("actions: %s", strings.Join(Actions(), ", "))
	}
	msg := s.args.ProtoReflect().New()
	for name, value := range step.GetArgs().GetFields() {
		fd := msg.Descriptor().Fields().ByName(protoreflect.Name(name))
		if fd == nil {
			return nil, Errorf(v1.Error_invalid, "%s has no such field", step.GetAction()).
				WithField("args."+name).WithHint("fields: %s", fieldNames(msg.Descriptor()))
		}
		if _, null := value.GetKind().(*structpb.Value_NullValue); null {
			continue
		}
		if err := setField(msg, fd, value); err != nil {
			return nil, err.WithField("args." + name)
		}
	}
	for _, name := range s.required {
		if v := step.GetArgs().GetFields()[name]; v == nil || isNull(v) {
			return nil, Errorf(v1.Error_invalid, "%s needs it", step.GetAction()).WithField("args." + name)
		}
	}
	return msg.Interface(), nil
}

func isNull(v *structpb.Value) bool {
	_, null := v.GetKind().(*structpb.Value_NullValue)
	return null
}

func fieldNames(md protoreflect.MessageDescriptor) string {
	var names []string
	for i := 0; i < md.Fields().Len(); i++ {
		names = append(names, string(md.Fields().Get(i).Name()))
	}
	return strings.Join(names, ", ")
}

func setField(msg protoreflect.Message, fd protoreflect.FieldDescriptor, value *structpb.Value) *Error {
	switch {
	case fd.Message() != nil && fd.Message().FullName() == "google.protobuf.Struct":
		object, ok := value.GetKind().(*structpb.Value_StructValue)
		if !ok {
			return wrongType("an object", value)
		}
		msg.Set(fd, protoreflect.ValueOfMessage(object.StructValue.ProtoReflect()))
	case fd.IsMap():
		fields, ok := value.GetKind().(*structpb.Value_StructValue)
		if !ok {
			return wrongType("an object of strings", value)
		}
		m := msg.Mutable(fd).Map()
		for k, v := range fields.StructValue.GetFields() {
			x, err := scalar(fd.MapValue(), v)
			if err != nil {
				return err
			}
			m.Set(protoreflect.ValueOfString(k).MapKey(), x)
		}
	case fd.IsList():
		items, ok := value.GetKind().(*structpb.Value_ListValue)
		if !ok {
			return wrongType("a list", value)
		}
		list := msg.Mutable(fd).List()
		for _, v := range items.ListValue.GetValues() {
			x, err := scalar(fd, v)
			if err != nil {
				return err
			}
			list.Append(x)
		}
	default:
		x, err := scalar(fd, value)
		if err != nil {
			return err
		}
		msg.Set(fd, x)
	}
	return nil
}

// maxExact is the largest whole number up to which JSON's numbers have them all.
const maxExact = 1 << 53

func scalar(fd protoreflect.FieldDescriptor, value *structpb.Value) (protoreflect.Value, *Error) {
	var none protoreflect.Value
	switch fd.Kind() {
	case protoreflect.StringKind:
		if v, ok := value.GetKind().(*structpb.Value_StringValue); ok {
			return protoreflect.ValueOfString(v.StringValue), nil
		}
		return none, wrongType("a string", value)
	case protoreflect.BoolKind:
		if v, ok := value.GetKind().(*structpb.Value_BoolValue); ok {
			return protoreflect.ValueOfBool(v.BoolValue), nil
		}
		return none, wrongType("true or false", value)
	case protoreflect.Uint32Kind:
		v, ok := value.GetKind().(*structpb.Value_NumberValue)
		if !ok {
			return none, wrongType("a whole number", value)
		}
		if n := v.NumberValue; n < 0 || n > math.MaxUint32 || n != math.Trunc(n) {
			return none, Errorf(v1.Error_invalid, "must be a whole number from 0 to %d, is %v", uint32(math.MaxUint32), n)
		}
		return protoreflect.ValueOfUint32(uint32(v.NumberValue)), nil
	case protoreflect.Uint64Kind:
		v, ok := value.GetKind().(*structpb.Value_NumberValue)
		if !ok {
			return none, wrongType("a whole number", value)
		}
		if n := v.NumberValue; n < 0 || n > maxExact || n != math.Trunc(n) {
			return none, Errorf(v1.Error_invalid, "must be a whole number from 0 to %d, is %v", uint64(maxExact), n)
		}
		return protoreflect.ValueOfUint64(uint64(v.NumberValue)), nil
	case protoreflect.EnumKind:
		v, ok := value.GetKind().(*structpb.Value_StringValue)
		if !ok {
			return none, wrongType("a string", value)
		}
		ev := fd.Enum().Values().ByName(protoreflect.Name(v.StringValue))
		if ev == nil {
			return none, Errorf(v1.Error_invalid, "has no value %q", v.StringValue)
		}
		return protoreflect.ValueOfEnum(ev.Number()), nil
	}
	return none, Errorf(v1.Error_internal, "the contract has a field of kind %v", fd.Kind())
}

func wrongType(want string, got *structpb.Value) *Error {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", got.GetKind()), "*structpb.Value_")
	return Errorf(v1.Error_invalid, "must be %s, is a %s", want, strings.ToLower(strings.TrimSuffix(kind, "Value")))
}
