// Keys, drag and notifications.
