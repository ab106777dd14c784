"""Images and grids of codes become files and come back, bit for bit."""

from smalti.codec.code_streams import read_codes, write_codes
from smalti.codec.comparison import other_bytes
from smalti.codec.header import Header
from smalti.codec.images import (
    Encoded,
    decode_codes,
    decode_images,
    encode_images,
    read_info,
    writer_of,
)
from smalti.codec.model import CodecModel, ImageModel

__all__ = [
    "CodecModel",
    "Encoded",
    "Header",
    "ImageModel",
    "decode_codes",
    "decode_images",
    "encode_images",
    "other_bytes",
    "read_codes",
    "read_info",
    "write_codes",
    "writer_of",
]
