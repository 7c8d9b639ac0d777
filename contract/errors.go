package contract

import (
	"errors"
	"fmt"

	v1 "harness/contract/harness/v1"
)

// Error is a v1.Error as a Go error: what was wrong, where, and what to do.
type Error struct {
	Kind                 v1.Error_Kind
	Message, Hint, Field string
}

// Proto is e as a message.
func (e *Error) Proto() *v1.Error {
	return &v1.Error{Kind: e.Kind, Message: e.Message, Hint: e.Hint, Field: e.Field}
}

// FromProto is a message as an Error.
func FromProto(e *v1.Error) *Error {
	return &Error{Kind: e.GetKind(), Message: e.GetMessage(), Hint: e.GetHint(), Field: e.GetField()}
}

func (e *Error) Error() string {
	s := e.Message
	if e.Field != "" {
		s = e.Field + ": " + s
	}
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Errorf makes an Error of a kind.
func Errorf(kind v1.Error_Kind, format string, a ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, a...)}
}

// WithHint says what to do about it.
func (e *Error) WithHint(format string, a ...any) *Error {
	e.Hint = fmt.Sprintf(format, a...)
	return e
}

// WithField names the field of the step, as "args.path".
func (e *Error) WithField(name string) *Error {
	e.Field = name
	return e
}

// AsError is err as an Error; what is not one is internal.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Errorf(v1.Error_internal, "%v", err)
}
