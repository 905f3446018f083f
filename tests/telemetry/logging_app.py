"""An app whose handler logs what it was given."""

import logging
import os

from foliot import Foliot

app = Foliot(os.environ.get("FOLIOT_URL", "http://127.0.0.1:7070"))


@app.job
async def tell(message: str, card: str) -> None:
    logging.getLogger("app").warning("%s %s", message, card)
