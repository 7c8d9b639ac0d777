package providers

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"strings"
	"testing"

	"harness/planner/model"
	"harness/planner/model/recorded"
)

// dot is a small image.
var dot = func() model.Image {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 9, 8))); err != nil {
		panic(err)
	}
	return model.Image{Name: "dot.png", MediaType: "image/png", Width: 9, Height: 8, Data: b.Bytes()}
}()

// Images go out in a form that the providers take: with the task, and as what a tool found.
func TestImages(t *testing.T) {
	each(t, []recorded.Reply{{Calls: []recorded.Call{{Name: "read_file", Args: json.RawMessage(`{"path":"dot.png"}`)}}}, {Text: "a dot"}, {Fault: "image"}},
		func(t *testing.T, m model.Model, s *recorded.Server) {
			task := model.Message{Role: model.User, Text: "what is this?", Images: []model.Image{dot}}
			r, err := m.Complete(t.Context(), ask(task), func(model.Delta) {})
			if err != nil {
				t.Fatal(err)
			}
			found := model.Message{Role: model.ToolRole, Results: []model.ToolResult{{CallID: r.Message.Calls[0].ID, Name: "read_file", Text: "dot.png", Images: []model.Image{dot}}}}
			if _, err = m.Complete(t.Context(), ask(task, r.Message, found), func(model.Delta) {}); err != nil {
				t.Fatal(err)
			}
			for i, body := range s.Requests() {
				if n := strings.Count(string(body), dot.Base64()); n != i+1 {
					t.Errorf("request %d has %d images: %s", i, n, body)
				}
			}
			_, err = m.Complete(t.Context(), ask(task), func(model.Delta) {})
			if e, ok := err.(*model.Error); !ok || e.Kind != model.Picture {
				t.Errorf("a refused image: %v", err)
			}
			blind := model.Blind([]model.Message{task, r.Message, found})
			if b, _ := json.Marshal(blind); strings.Contains(string(b), dot.Base64()) || strings.Count(string(b), "dot.png is not shown") != 2 || task.Images == nil || found.Results[0].Images == nil {
				t.Errorf("%s", b)
			}
		})
}
