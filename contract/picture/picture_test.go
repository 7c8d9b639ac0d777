package picture

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand"
	"strings"
	"testing"
)

// drawn is an image, noisy where it is to be hard to compress.
func drawn(w, h int, noisy bool) image.Image {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	r := rand.New(rand.NewSource(1))
	for i := range m.Pix {
		m.Pix[i] = byte(i / 4096)
		if noisy {
			m.Pix[i] = byte(r.Intn(256))
		}
	}
	return m
}

func pngOf(t *testing.T, m image.Image) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// webp is a lossless one of 16×16 pixels.
const webp = "UklGRhwAAABXRUJQVlA4TA8AAAAvD8ADAAcQ/Y/+ByKi/wEA"

func TestFit(t *testing.T) {
	var g, j bytes.Buffer
	if err := gif.Encode(&g, image.NewPaletted(image.Rect(0, 0, 20, 10), palette.Plan9), nil); err != nil {
		t.Fatal(err)
	}
	if err := jpeg.Encode(&j, drawn(3000, 100, false), nil); err != nil {
		t.Fatal(err)
	}
	w, err := base64.StdEncoding.DecodeString(webp)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data []byte
		size image.Point
		says string
	}{
		"small png":   {pngOf(t, drawn(30, 20, true)), image.Pt(30, 20), "png image of 30×20 pixels"},
		"large noise": {pngOf(t, drawn(2000, 1000, true)), image.Point{}, "png image of 2000×1000 pixels, shown at"},
		"long jpeg":   {j.Bytes(), image.Pt(1568, 52), "jpeg image of 3000×100 pixels, shown at 1568×52"},
		"gif":         {g.Bytes(), image.Pt(20, 10), "gif image of 20×10 pixels, its first frame"},
		"webp":        {w, image.Pt(16, 16), "webp image of 16×16 pixels"},
	} {
		p, err := Fit(c.data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		m, format, err := image.Decode(bytes.NewReader(p.Data))
		if err != nil || "image/"+format != p.MediaType || m.Bounds().Size() != image.Pt(p.Width, p.Height) || len(p.Data) > MaxBytes || max(p.Width, p.Height) > MaxEdge {
			t.Errorf("%s: %s of %d bytes, %d×%d: %v", name, p.MediaType, len(p.Data), p.Width, p.Height, err)
		}
		if c.size != (image.Point{}) && c.size != image.Pt(p.Width, p.Height) || !strings.HasPrefix(p.String(), c.says) {
			t.Errorf("%s: %v", name, p)
		}
		if Kind(c.data) == "" {
			t.Errorf("%s is not known", name)
		}
	}
}

// What cannot be shown is an error in words: cut off, too small, a bomb.
func TestUnfit(t *testing.T) {
	bomb := pngOf(t, image.NewPaletted(image.Rect(0, 0, 12000, 12000), color.Palette{color.White}))
	whole := pngOf(t, drawn(100, 100, true))
	for want, data := range map[string][]byte{
		"too few": pngOf(t, drawn(1, 1, false)), "too narrow": pngOf(t, drawn(20000, 8, false)), "12000×12000": bomb,
		"damaged": whole[:len(whole)/2], "unknown kind": []byte("\x89PNG\r\n\x1a\n")} {
		if p, err := Fit(data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", want, p, err)
		}
	}
}

func FuzzFit(f *testing.F) {
	f.Add([]byte("GIF89a\x09\x00\x09\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x09\x00\x09\x00\x00\x02\x02\x44\x01\x00;"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, err := Fit(data); err == nil && (len(p.Data) == 0 || len(p.Data) > MaxBytes || max(p.Width, p.Height) > MaxEdge) {
			t.Errorf("%v: %d bytes", p, len(p.Data))
		}
	})
}
