"""Writes small PDF files for tests: one line of text a page, or an image of none. Tests only."""

from collections.abc import Sequence


def pdf(*pages: str) -> bytes:
    """A PDF with these pages; an empty text makes a page without any."""
    first = 4
    kids = " ".join(f"{first + 2 * index} 0 R" for index in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for index, text in enumerate(pages):
        drawn = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET" if text else ""
        objects += [
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >>"
            f" /Contents {first + 2 * index + 1} 0 R >>",
            f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream",
        ]
    return _file(objects)


def _file(objects: Sequence[str]) -> bytes:
    data = b"%PDF-1.4\n"
    places: list[int] = []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    count = len(objects) + 1
    end = f"xref\n0 {count}\n0000000000 65535 f \n{table}trailer\n<< /Size {count} /Root 1 0 R >>\n"
    return data + f"{end}startxref\n{len(data)}\n%%EOF\n".encode()
