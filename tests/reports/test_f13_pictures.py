"""F13: folders of pictures as people have them. Each case is a line of docs/reports.md. SPDX-License-Identifier: Apache-2.0"""

import io

import numpy as np
import pytest

from harness import records

image = pytest.importorskip("PIL.Image")

RED, BLUE = (200, 30, 30), (20, 40, 220)


def encoded(picture, kind, **more):
    out = io.BytesIO()
    picture.save(out, kind, **more)
    return out.getvalue()


def plain(colour, size=(12, 8), mode="RGB"):
    return image.new("RGB", size, colour).convert(mode)


def job(scratch, channels=3, **more):
    reader = {"type": "images", "folder": "pictures", "size": [8, 12], "crop": "none", "channels": channels, **more}
    layers = [("seen scale_shift image", {}), ("score fc image", {"size": 2}),
              ("cost cross_entropy score,label", {"from_logits": True})]  # fmt: skip
    scratch.job(reader, layers, outputs=["cost", "seen"])
    messages = scratch.run("train", "job.toml")
    rows = records(scratch.run("infer", "job.toml", "--reader", "train", "--output", "seen", "--with", "file"))
    return {row["file"]: np.array(row["seen"]).reshape(8, 12, channels) for row in rows}, messages


def test_names_that_lie(scratch):
    """A WebP that is called .jpg, a PNG called .jpeg, and capitals: the content says the format"""
    scratch.write("pictures/a/1.jpg", encoded(plain(RED), "WEBP", lossless=True))
    scratch.write("pictures/a/2.JPEG", encoded(plain(RED), "PNG"))
    scratch.write("pictures/b/3.Png", encoded(plain(BLUE), "BMP"))
    seen, _ = job(scratch)
    assert [tuple(seen[name][0, 0]) for name in ("a/1.jpg", "a/2.JPEG", "b/3.Png")] == [RED, RED, BLUE]


def test_orientation_in_every_format(scratch):
    """EXIF orientation of a JPEG, a PNG, a WebP and a TIFF: all upright, and said once"""
    exif = image.Exif()
    exif[0x112] = 6
    picture = image.new("RGB", (8, 12), BLUE)
    picture.paste(RED, (0, 0, 8, 6))  # above as it is stored; on the right once it is turned
    for number, (kind, more) in enumerate([("JPEG", {"quality": 100, "subsampling": 0}), ("PNG", {}),
                                           ("WEBP", {"lossless": True}), ("TIFF", {})]):  # fmt: skip
        scratch.write(f"pictures/{'ab'[number % 2]}/{kind}.{kind.lower()}", encoded(picture, kind, exif=exif, **more))
    seen, messages = job(scratch)
    for name, pixels in seen.items():
        assert np.abs(pixels[2, 9] - RED).max() < 6 and np.abs(pixels[2, 2] - BLUE).max() < 6, name
    assert messages.count("EXIF orientation") == 1


def test_pictures_of_printers(scratch):
    """CMYK in JPEG and TIFF, palettes, one bit and greys beside colours"""
    for name, mode, kind in (("1.jpg", "CMYK", "JPEG"), ("2.tif", "CMYK", "TIFF"), ("3.gif", "P", "GIF"), ("4.png", "P", "PNG"),
                             ("5.bmp", "1", "BMP"), ("6.png", "L", "PNG")):  # fmt: skip
        scratch.write(f"pictures/a/{name}", encoded(plain((255, 255, 255), mode=mode), kind))
        scratch.write(f"pictures/b/{name}", encoded(plain((0, 0, 0), mode=mode), kind))
    seen, _ = job(scratch)
    assert len(seen) == 12
    for name, pixels in seen.items():
        assert np.abs(pixels - (255 if name.startswith("a") else 0)).max() <= 3, name


def test_transparency(scratch):
    """Transparent pixels of PNG, WebP and GIF become white"""
    clear = image.new("RGBA", (12, 8), (10, 20, 30, 0))
    scratch.write("pictures/a/1.png", encoded(clear, "PNG"))
    scratch.write("pictures/a/2.webp", encoded(clear, "WEBP", lossless=True))
    scratch.write("pictures/b/3.gif", encoded(clear, "GIF"))
    seen, _ = job(scratch)
    assert all((pixels == 255).all() for pixels in seen.values())


def test_animations(scratch):
    """An animated GIF and an animated WebP are their first picture"""
    frames = [plain(BLUE), plain(RED)]
    scratch.write("pictures/a/1.gif", encoded(frames[0], "GIF", save_all=True, append_images=frames[1:]))
    scratch.write("pictures/b/2.webp", encoded(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True))
    seen, _ = job(scratch)
    assert all(tuple(pixels[4, 6]) == BLUE for pixels in seen.values())


def test_what_computers_add(scratch):
    """Thumbs.db, desktop.ini, .DS_Store, ._1.jpg, __MACOSX and a HEIC are left out and counted; a link to a picture counts"""
    for folder, colour in (("a", RED), ("b", BLUE)):
        scratch.write(f"pictures/{folder}/1.png", encoded(plain(colour), "PNG"))
        for name in ("Thumbs.db", "desktop.ini", ".DS_Store", "._1.png", "1.heic"):
            scratch.write(f"pictures/{folder}/{name}", "x")
    scratch.write("pictures/__MACOSX/a/1.png", encoded(plain(RED), "PNG"))
    (scratch.folder / "pictures/b/2.png").symlink_to(scratch.folder / "pictures/a/1.png")
    seen, messages = job(scratch)
    assert sorted(seen) == ["a/1.png", "b/1.png", "b/2.png"]
    for words in ('2 ".heic"', '2 ".db"', '2 ".ini"', "4 whose names begin with a dot"):
        assert words in messages, messages


@pytest.mark.parametrize("content, words", [
    (b"", "the file is empty"), (b"<html>404</html>", "neither JPEG, PNG, GIF, WebP, BMP nor TIFF"),
    (encoded(plain(RED, (200, 200)), "JPEG")[:900], "JPEG"), (encoded(plain(RED, (90, 90)), "PNG")[:-40], "PNG")])  # fmt: skip
def test_broken_downloads(scratch, content, words):
    """An empty file, a page of HTML and pictures that end early are refused with their path"""
    scratch.write("pictures/a/1.jpg", content)
    scratch.write("pictures/b/2.png", encoded(plain(BLUE), "PNG"))
    reader = {"type": "images", "folder": "pictures", "size": [8, 12]}
    layers = [("score fc image", {"size": 2}), ("cost cross_entropy score,label", {"from_logits": True})]
    message = scratch.refusal(reader, layers=layers)
    assert "a/1.jpg" in message and words in message, message


def test_sixteen_bits(scratch):
    """16 bits of PNG and TIFF become the nearest of 8, without a curve"""
    grey = np.linspace(0, 65535, 96).astype(np.uint16).reshape(8, 12)
    for name, kind in (("a/1.png", "PNG"), ("b/2.tif", "TIFF")):
        scratch.write(f"pictures/{name}", encoded(image.fromarray(grey), kind))
    seen, _ = job(scratch, channels=1)
    for pixels in seen.values():
        assert np.abs(pixels[..., 0] - grey / 257).max() <= 0.51
