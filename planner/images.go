package planner

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"harness/contract"
	v1 "harness/contract/harness/v1"
	"harness/contract/picture"
	"harness/planner/model"
)

// MaxImages is how many images a task may come with.
const MaxImages = 8

// Image is one that comes with the task: a file of the workspace, which the
// executor reads, or the bytes of a file from elsewhere.
type Image struct {
	Path string
	Data []byte
}

// images is what the model is shown of a result.
func images(r *v1.StepResult) []model.Image {
	i := r.GetImage()
	if len(i.GetData()) == 0 {
		return nil
	}
	return []model.Image{{Name: r.GetFile().GetPath(), MediaType: i.MediaType, Width: int(i.Width), Height: int(i.Height), Data: i.Data}}
}

// unseen is a result without the bytes of its image, as events have it: the
// image itself is in the message to the model.
func unseen(r *v1.StepResult) *v1.StepResult {
	if len(r.GetImage().GetData()) == 0 {
		return r
	}
	r = proto.CloneOf(r)
	r.Image.Data = nil
	return r
}

// attached is the images of the task.
func (r *run) attached() ([]model.Image, error) {
	var list []model.Image
	for _, i := range r.Images {
		shown, err := r.look(i)
		if err != nil {
			return nil, &stop{"bad_image", 42, fmt.Sprintf("the image %s: %v", i.Path, err)}
		}
		list = append(list, shown)
	}
	return list, nil
}

func (r *run) look(i Image) (model.Image, error) {
	if i.Data != nil {
		p, err := picture.Fit(i.Data)
		return model.Image{Name: i.Path, MediaType: p.MediaType, Width: p.Width, Height: p.Height, Data: p.Data}, err
	}
	res, err := r.submit(r.ctx, r.step(contract.ReadFile, map[string]any{"path": i.Path}))
	if err != nil {
		return model.Image{}, err
	}
	if shown := images(res); shown != nil {
		return shown[0], nil
	}
	if res.Status != v1.Status_ok {
		return model.Image{}, contract.FromProto(res.Error)
	}
	if res.GetFile().GetEncoding() != "binary" {
		return model.Image{}, errors.New("it is no PNG, JPEG, GIF or WebP file")
	}
	return model.Image{}, errors.New(strings.TrimSpace(res.GetOutput().GetText()))
}
