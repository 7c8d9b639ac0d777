package terminal

import "context"

type answer struct {
	text string
	err  error
}

// read waits for one line of the person, or for the end of ctx. A read of a
// terminal cannot be taken back: the one that an interrupted question leaves
// behind serves the next question.
func (s *Surface) read(ctx context.Context) (string, error) {
	if s.answer == nil {
		next := make(chan answer, 1)
		s.answer = next
		go func() {
			text, err := s.In.ReadString('\n')
			next <- answer{text, err}
		}()
	}
	select {
	case a := <-s.answer:
		s.answer = nil
		return a.text, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
